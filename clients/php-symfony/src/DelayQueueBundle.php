<?php

declare(strict_types=1);

namespace DelayQueue\Symfony;

use DelayQueue\Client\Client;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\Reference;
use Symfony\Component\HttpKernel\Bundle\Bundle;
use Symfony\Component\Messenger\Event\WorkerMessageFailedEvent;
use Symfony\Component\Messenger\Event\WorkerStartedEvent;

/** Lets Messenger know the DSN delayqueue://, and services the Client of DELAYQUEUE_URL and DELAYQUEUE_TOKEN. */
final class DelayQueueBundle extends Bundle
{
    public function build(ContainerBuilder $container): void
    {
        parent::build($container);
        $container->register(WorkerTransports::class, WorkerTransports::class)
            ->addTag('kernel.event_listener', ['event' => WorkerStartedEvent::class, 'method' => 'begin']);
        $container->register(FailureGuard::class, FailureGuard::class) // between those for retries and for failures
            ->addTag('kernel.event_listener', ['event' => WorkerMessageFailedEvent::class, 'method' => 'check', 'priority' => 0]);
        $container->register(DelayQueueTransportFactory::class, DelayQueueTransportFactory::class)
            ->addArgument(new Reference(WorkerTransports::class))
            ->addTag('messenger.transport_factory');
        $container->register(Client::class, Client::class);
    }
}
