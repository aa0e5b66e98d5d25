<?php
// Laravel with the connection that its page shows: php laravel_beanstalkd.php CONNECTION COMMAND...
//
// COMMAND: place ORDER SECONDS, group ORDER GROUP, or a command of artisan.

namespace Illuminate\Foundation\Bus {
    trait Dispatchable // part of the framework, which is not in Debian's packages
    {
    }
}

namespace {
    require __DIR__ . '/../beanstalk/laravel.php';
    require __DIR__ . '/../../examples/laravel/CloseOrder.php';

    use App\Jobs\CloseOrder;

    class Grouped extends CloseOrder
    {
        public $messageGroup;

        public function onGroup($group) // as in Laravel 12.27 and 13
        {
            $this->messageGroup = $group;

            return $this;
        }
    }

    [, $connection, $command] = $argv;
    $connections = eval("return [$connection];");
    $laravel = new Laravel($connections['beanstalkd']);
    if ($command === 'place') {
        $laravel->queue()->later((int) $argv[4], new CloseOrder($argv[3]));
    } elseif ($command === 'group') {
        $laravel->queue()->push((new Grouped($argv[3]))->onGroup($argv[4]), '', 'grouped');
    } else {
        exit($laravel->artisan(array_slice($argv, 2)));
    }
}
