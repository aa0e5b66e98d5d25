<?php
// The recipe's command of ThinkPHP and process of Hyperf, with a few lines that stand in for the frameworks:
//   php frameworks.php FOLDER   which has queue_functions.php, CloseOrders.php and the folder app

namespace think\console {
    class Input
    {
    }

    class Output
    {
        public function writeln(string $line): void
        {
            echo "$line\n";
            posix_kill(getmypid(), SIGTERM); // as systemd does
        }
    }

    abstract class Command
    {
        public string $name;

        public object $app;

        public function __construct()
        {
            $this->configure();
        }

        protected function setName(string $name): self
        {
            $this->name = $name;

            return $this;
        }

        public function run(): int
        {
            return $this->execute(new Input(), new Output());
        }
    }
}

namespace Database {
    class Db
    {
        public static int $failures = 1;

        public static function __callStatic(string $verb, array $of): self
        {
            return new self();
        }

        public function where(array $which): self
        {
            if (self::$failures-- > 0) {
                throw new \PDOException('gone away');
            }

            return $this;
        }

        public function update(array $values): void
        {
        }
    }
}

namespace Hyperf\Process {
    abstract class AbstractProcess
    {
        public function __construct(protected object $container)
        {
        }
    }

    class ProcessManager
    {
        public static int $rounds = 2;

        public static function isRunning(): bool
        {
            return self::$rounds-- > 0;
        }
    }
}

namespace {
    class Container
    {
        public function get(string $class): object
        {
            return new $class();
        }

        public function make(string $class): object
        {
            return new $class();
        }
    }

    class_alias(Database\Db::class, 'think\facade\Db');
    class_alias(Database\Db::class, 'Hyperf\DbConnection\Db');
    $folder = $argv[1];
    require "$folder/queue_functions.php";
    require "$folder/CloseOrders.php";
    require "$folder/app/command/OrdersClose.php";
    require "$folder/app/Process/CloseOrdersProcess.php";

    $orders = new App\Service\CloseOrders();
    $command = new app\command\OrdersClose();
    $command->app = new Container();
    $orders->placed('3001', 0);
    DelayQueue\queue('push', ['topic' => 'order-close', 'id' => 'close-3002', 'ttr' => 60, 'body' => '3002']);
    echo $command->name, ' ', $command->run(), "\n"; // the first order fails, and waits for its second attempt

    $orders->placed('3003', 0);
    $orders->placed('3004', 0);
    (new App\Process\CloseOrdersProcess(new Container()))->handle();

    $orders->placed('3005', 0);
    $rounds = 1;
    $orders->work(fn (string $order) => $orders->placed($order), function () use (&$rounds) {
        return $rounds-- > 0;
    });
    echo "pushed again meanwhile\n";
}
