<?php
// Symfony Messenger's own worker and its transport for beanstalkd: php symfony.php HOST PORT TUBE COMMAND...
//
// COMMAND: dispatch NAME..., count, or messenger:consume and its options.

error_reporting(E_ALL & ~E_DEPRECATED); // Symfony 5.4 on PHP 8.2
require 'Psr/Container/autoload.php';
foreach (['Console', 'EventDispatcher', 'Messenger', 'Messenger/Bridge/Beanstalkd'] as $part) {
    require "Symfony/Component/$part/autoload.php";
}

use Psr\Container\ContainerInterface;
use Symfony\Component\Console\Application;
use Symfony\Component\Console\Input\ArgvInput;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\Messenger\Bridge\Beanstalkd\Transport\BeanstalkdTransportFactory;
use Symfony\Component\Messenger\Command\ConsumeMessagesCommand;
use Symfony\Component\Messenger\EventListener\SendFailedMessageForRetryListener;
use Symfony\Component\Messenger\EventListener\SendFailedMessageToFailureTransportListener;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Middleware\SendMessageMiddleware;
use Symfony\Component\Messenger\Retry\MultiplierRetryStrategy;
use Symfony\Component\Messenger\RoutableMessageBus;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Transport\Sender\SendersLocator;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;

class Task
{
    public function __construct(public string $name)
    {
    }
}

class Services implements ContainerInterface // what the framework's container does
{
    public function __construct(private array $services)
    {
    }

    public function get(string $id)
    {
        return $this->services[$id];
    }

    public function has(string $id): bool
    {
        return isset($this->services[$id]);
    }
}

function handle(Task $task): void
{
    echo "$task->name\n";
    match ($task->name) {
        'fails' => throw new RuntimeException('no such order'),
        'kills' => posix_kill(getmypid(), SIGKILL),
        default => null,
    };
}

[, $host, $port, $tube, $command] = $argv;
$factory = new BeanstalkdTransportFactory();
$transport = fn (string $name) => $factory->createTransport(
    "beanstalkd://$host:$port?tube_name=$name&timeout=5&ttr=60",
    [],
    new PhpSerializer()
);
// as config/packages/messenger.yaml has it
$transports = new Services(['async' => $transport($tube), 'failed' => $transport("$tube.failed")]);
$bus = new MessageBus([
    new SendMessageMiddleware(new SendersLocator([Task::class => ['async']], $transports)),
    new HandleMessageMiddleware(new HandlersLocator([Task::class => ['handle']])),
]);
$strategies = new Services(['async' => new MultiplierRetryStrategy(maxRetries: 1, delayMilliseconds: 1000)]);
$failures = new Services(['async' => $transports->get('failed')]);
$events = new EventDispatcher();
$events->addSubscriber(new SendFailedMessageForRetryListener($transports, $strategies));
$events->addSubscriber(new SendFailedMessageToFailureTransportListener($failures));

if ($command === 'dispatch') {
    foreach (array_slice($argv, 5) as $name) {
        $bus->dispatch(new Task($name), $name === 'later' ? [new DelayStamp(1000)] : []);
    }
} elseif ($command === 'count') {
    foreach (['async', 'failed'] as $name) {
        echo "$name {$transports->get($name)->getMessageCount()}\n";
    }
} else {
    $application = new Application();
    $application->add(new ConsumeMessagesCommand(new RoutableMessageBus($transports, $bus), $transports, $events));
    $application->run(new ArgvInput(['console', ...array_slice($argv, 4)]));
}
