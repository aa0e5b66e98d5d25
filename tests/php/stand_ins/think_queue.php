<?php
// The parts of ThinkPHP and of think-queue, which are not in Debian, that a connection and a worker use.

namespace think {
    class Log
    {
        public function warning($message): void
        {
            echo "warning: $message\n";
        }
    }

    class App
    {
        public Log $log;

        public function __construct()
        {
            $this->log = new Log();
        }

        private string $namespace = 'app';

        public function getNamespace(): string
        {
            return $this->namespace;
        }

        public function setNamespace(string $namespace): self
        {
            $this->namespace = $namespace;

            return $this;
        }

        public function initialize(): void
        {
            spl_autoload_register(function (string $class) {
                $class === 'think\facade\Db' && class_alias(Orders::class, $class);
            });
        }
    }

    class Orders
    {
        public static function name(string $table): self
        {
            return new self();
        }

        public function where(array $which): self
        {
            echo json_encode($which), "\n";

            return $this;
        }

        public function update(array $values): int
        {
            return 1;
        }
    }
}

namespace {
    function app(string $class): object
    {
        return new $class();
    }
}

namespace think\helper {
    class Str
    {
        public static function studly(string $value): string
        {
            return str_replace(' ', '', ucwords(str_replace(['-', '_'], ' ', $value)));
        }
    }
}

namespace think\queue {
    abstract class Connector
    {
        protected $app;

        protected $connection = 'delay-queue';

        public function setApp(object $app): self
        {
            $this->app = $app;

            return $this;
        }

        protected function createPayload($job, $data = '')
        {
            return json_encode($this->createPayloadArray($job, $data));
        }

        protected function createPayloadArray($job, $data = '')
        {
            return is_object($job)
                ? ['job' => 'think\queue\CallQueuedHandler@call', 'timeout' => $job->timeout ?? null, 'data' => serialize($job)]
                : ['job' => $job, 'data' => $data];
        }
    }

    abstract class Job
    {
        protected $app;

        protected $connection;

        protected $queue;

        protected $deleted = false;

        public function fire(): void
        {
            $payload = json_decode($this->getRawBody(), true);
            [$name, $method] = explode('@', "{$payload['job']}@fire");
            $class = str_contains($name, '\\') ? $name : $this->app->getNamespace() . '\\job\\' . \think\helper\Str::studly($name);
            (new $class())->$method($this, $payload['data']);
        }

        public function delete()
        {
            $this->deleted = true;
        }

        public function isDeleted()
        {
            return $this->deleted;
        }

        public function markAsFailed()
        {
        }

        public function release($delay = 0)
        {
        }
    }
}
