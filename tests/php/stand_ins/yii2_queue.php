<?php
// The parts of Yii and yii2-queue that a driver extends, which are not in Debian: as much as a queue asks of them.

namespace yii\base {
    class BaseObject
    {
        public function __construct(array $config = [])
        {
            foreach ($config as $name => $value) {
                $this->$name = $value;
            }
        }
    }
}

namespace {
    class Yii
    {
        public static function warning($message): void
        {
            echo "warning: $message\n";
        }
    }
}

namespace yii\queue {
    interface RetryableJobInterface
    {
    }
}

namespace yii\queue\cli {
    use yii\base\BaseObject;

    class Command
    {
    }

    abstract class Queue extends BaseObject
    {
        public const STATUS_WAITING = 1;

        public const STATUS_RESERVED = 2;

        public const STATUS_DONE = 3;

        private int $delay = 0;

        private ?int $priority = null;

        public function delay($seconds): static
        {
            $this->delay = $seconds;

            return $this;
        }

        public function priority($priority): static
        {
            $this->priority = $priority;

            return $this;
        }

        public function push($job)
        {
            [$delay, $priority] = [$this->delay, $this->priority];
            [$this->delay, $this->priority] = [0, null];

            return $this->pushMessage(serialize($job), $job->getTtr(), $delay, $priority);
        }

        protected function runWorker(callable $handler)
        {
            $handler(fn () => true);
        }

        protected function handleMessage($id, $message, $ttr, $attempt)
        {
            $job = unserialize($message);
            try {
                $job->execute($this);
            } catch (\Exception $error) {
                echo "{$error->getMessage()}, attempt $attempt of $ttr s\n";

                return !$job->canRetry($attempt, $error);
            }

            return true;
        }
    }
}
