<?php

return [
    'default' => 'sqlite',
    'connections' => ['sqlite' => ['driver' => 'sqlite', 'database' => database_path('shop.sqlite'), 'prefix' => '']],
    'migrations' => 'migrations',
];
