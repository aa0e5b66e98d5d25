<?php
// Symfony with what its page shows: php symfony.php MESSENGER COMMAND...
//
// MESSENGER: messenger.yaml as JSON. COMMAND: place ORDER MS, count TRANSPORT, or a command of the messenger.

require __DIR__ . '/../beanstalk/symfony.php';
require __DIR__ . '/../../examples/symfony/CloseOrder.php';
require __DIR__ . '/../../examples/symfony/CloseOrderHandler.php';

use App\Message\CloseOrder;
use App\MessageHandler\CloseOrderHandler;
use Symfony\Component\Messenger\Stamp\DelayStamp;

[, $file, $command] = $argv;
$symfony = new Symfony(
    json_decode($file, true)['framework']['messenger'],
    [CloseOrder::class => [new CloseOrderHandler()]]
);
match ($command) {
    'place' => $symfony->bus->dispatch(new CloseOrder($argv[3]), [new DelayStamp((int) $argv[4])]),
    'count' => print("{$symfony->count($argv[3])}\n"),
    default => exit($symfony->console(array_slice($argv, 2))),
};
