<?php
// The parts of think-queue that a connection extends, which is not in Debian: as much as its own worker asks of them.

namespace think {
    class App
    {
    }
}

namespace think\queue {
    trait InteractsWithTime
    {
        protected function secondsUntil($delay)
        {
            return (int) $delay;
        }
    }

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
            return json_encode(['job' => $job, 'data' => $data]);
        }
    }

    abstract class Job
    {
        protected $app;

        protected $connection;

        protected $queue;

        public function delete()
        {
        }

        public function release($delay = 0)
        {
        }
    }
}
