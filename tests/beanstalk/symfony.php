<?php
// The parts of Symfony's framework that its messenger needs; messenger, worker and transport are Symfony's own, as Debian has them.

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
use Symfony\Component\Messenger\Transport\Sender\SendersLocator;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;

class Services implements ContainerInterface // stands in for the framework's container
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

class Symfony
{
    private Services $transports;

    private EventDispatcher $events;

    public MessageBus $bus;

    /** $messenger: what config/packages/messenger.yaml has under "messenger". */
    public function __construct(array $messenger, array $handlers)
    {
        $factory = new BeanstalkdTransportFactory();
        $transports = $strategies = $failures = [];
        foreach ($messenger['transports'] as $name => $transport) {
            $dsn = is_array($transport) ? $transport['dsn'] : $transport;
            $transports[$name] = $factory->createTransport($dsn, [], new PhpSerializer());
            if (isset($transport['retry_strategy'])) {
                ['max_retries' => $retries, 'delay' => $ms, 'multiplier' => $multiplier] = $transport['retry_strategy'];
                $strategies[$name] = new MultiplierRetryStrategy($retries, $ms, $multiplier);
            }
            if ($name !== $messenger['failure_transport']) {
                $failures[$name] = $messenger['failure_transport'];
            }
        }
        $this->transports = new Services($transports);
        $routing = array_map(fn ($name) => [$name], $messenger['routing']);
        $this->bus = new MessageBus([
            new SendMessageMiddleware(new SendersLocator($routing, $this->transports)),
            new HandleMessageMiddleware(new HandlersLocator($handlers)),
        ]);
        $this->events = new EventDispatcher();
        $this->events->addSubscriber(new SendFailedMessageForRetryListener($this->transports, new Services($strategies)));
        $failures = new Services(array_map($this->transports->get(...), $failures));
        $this->events->addSubscriber(new SendFailedMessageToFailureTransportListener($failures));
    }

    /** How many messages are ready. */
    public function count(string $transport): int
    {
        return $this->transports->get($transport)->getMessageCount();
    }

    /** A command of the messenger: $words are what follows "php bin/console". Its messages go to standard error. */
    public function console(array $words): int
    {
        $application = new Application();
        $bus = new RoutableMessageBus($this->transports, $this->bus);
        $application->add(new ConsumeMessagesCommand($bus, $this->transports, $this->events));
        return $application->run(new ArgvInput(['console', ...$words]));
    }
}
