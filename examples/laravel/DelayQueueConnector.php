<?php
// What config/queue.php names by "driver": app/Queue/DelayQueueConnector.php

namespace App\Queue;

use Illuminate\Queue\Connectors\ConnectorInterface;

class DelayQueueConnector implements ConnectorInterface
{
    public function connect(array $config)
    {
        $defaults = ['queue' => 'default', 'ttr' => 90, 'wait' => 5, 'token' => null, 'after_commit' => false];
        return new DelayQueue($config + $defaults);
    }
}
