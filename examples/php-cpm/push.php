<?php

use DelayQueue\DelayQueue;
use DelayQueue\Job;
use Shop\OrderHandler;

require 'vendor/autoload.php';
require 'OrderHandler.php';

/** A job with what this server can do beyond the original: every public property is sent. */
class RetriedJob extends Job
{
    public $tags = [];
    public $retry = ['delays' => ['10s', '1m', '10m']];
    public $retain = 86400; // seconds in which /get returns its record
}

[, $order, $seconds] = $argv;
$job = new RetriedJob();
$job->setTopic('order');
$job->setId("close-$order");
$job->setDelay((int) $seconds);
$job->setTtr(60);
$job->setBody(['order' => $order]);
$job->tags = ["order:$order"];
(new DelayQueue('http://localhost:9277'))->push(OrderHandler::class, $job);
