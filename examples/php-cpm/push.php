<?php

use DelayQueue\DelayQueue;
use DelayQueue\Job;
use Shop\OrderHandler;

require 'vendor/autoload.php';
require 'OrderHandler.php';

/** A job with features that the original lacks: every public property is sent. */
class RetriedJob extends Job
{
    public $tags = [];
    public $retry = ['delays' => ['10s', '1m', '10m']];
    public $retain = 86400; // seconds that /get returns its record after its end
}

[, $order, $seconds] = $argv + [null, null, null];
is_numeric($seconds) || throw new InvalidArgumentException('php push.php ORDER SECONDS');
$job = new RetriedJob();
$job->setTopic('order');
$job->setId("close-$order");
$job->setDelay((int) $seconds);
$job->setTtr(60);
$job->setBody(['order' => $order]);
$job->tags = ["order:$order"];
(new DelayQueue('http://localhost:9277'))->push(OrderHandler::class, $job);
