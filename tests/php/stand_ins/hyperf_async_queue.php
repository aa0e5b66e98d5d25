<?php
// The parts of hyperf/async-queue that a driver extends, which is not in Debian: as much as a driver asks of them.

namespace Hyperf\AsyncQueue {
    interface JobInterface
    {
    }

    abstract class Job implements JobInterface
    {
        protected int $maxAttempts = 0;

        public function fail(\Throwable $error): void
        {
        }

        public function getMaxAttempts(): int
        {
            return $this->maxAttempts;
        }
    }

    interface MessageInterface
    {
    }

    class JobMessage implements MessageInterface
    {
        private int $attempts = 0;

        public function __construct(private JobInterface $job)
        {
        }

        public function job(): JobInterface
        {
            return $this->job;
        }

        public function attempts(): bool
        {
            return $this->job->getMaxAttempts() > $this->attempts++;
        }

        public function getAttempts(): int
        {
            return $this->attempts;
        }
    }

    enum Result
    {
        case ACK;
        case REQUEUE;
        case RETRY;
        case DROP;
    }
}

namespace Hyperf\AsyncQueue\Event {
    abstract class Event
    {
        public function __construct(public object $message, public mixed $of = null)
        {
        }
    }

    class BeforeHandle extends Event
    {
    }

    class AfterHandle extends Event
    {
    }

    class RetryHandle extends Event
    {
    }

    class FailedHandle extends Event
    {
    }
}

namespace Psr\Container {
    interface ContainerInterface
    {
    }
}

namespace Hyperf\Contract {
    use Psr\Container\ContainerInterface;

    class StdoutLoggerInterface
    {
        public function warning($message): void
        {
            echo "warning: $message\n";
        }
    }

    class Container implements ContainerInterface
    {
        public function get(string $id): object
        {
            return new $id();
        }
    }
}

namespace Hyperf\AsyncQueue\Driver {
    use Psr\Container\ContainerInterface;

    class Packer
    {
        public function pack(mixed $data): string
        {
            return serialize($data);
        }

        public function unpack(string $data): mixed
        {
            return @unserialize($data);
        }
    }

    class Printed
    {
        public function dispatch(object $event): void
        {
            echo basename(strtr($event::class, '\\', '/')), " {$event->message->getAttempts()}\n";
        }
    }

    abstract class Driver
    {
        protected Packer $packer;

        protected ?Printed $event;

        public function __construct(protected ContainerInterface $container, protected array $config)
        {
            $this->packer = new Packer();
            $this->event = new Printed();
        }

        /** Until nothing is there; what it cannot read is nothing, too. */
        public function consume(): void
        {
            while (([$data, $message] = $this->pop())[0] !== false) {
                $this->getCallback($data, $message)();
            }
        }
    }
}
