<?php
// What config/queue.php names by "driver": app/Queue/DelayQueueConnector.php

namespace App\Queue;

use Illuminate\Queue\Connectors\ConnectorInterface;

class DelayQueueConnector implements ConnectorInterface
{
    public function connect(array $config)
    {
        return new DelayQueue($config + ['queue' => 'default', 'ttr' => 90, 'wait' => 5, 'token' => null]);
    }
}
