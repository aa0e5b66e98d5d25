<?php

namespace app\command;

use app\service\CloseOrders;
use think\console\Command;
use think\console\Input;
use think\console\Output;
use think\facade\Db;

class OrdersClose extends Command
{
    private bool $running = true;

    protected function configure(): void
    {
        $this->setName('orders:close');
    }

    protected function execute(Input $input, Output $output): int
    {
        pcntl_async_signals(true); // without the extension pcntl, omit this: a job that a stop interrupts runs again
        pcntl_signal(SIGTERM, function () {
            $this->running = false;
        });
        $this->app->make(CloseOrders::class)->work(function (string $order) use ($output) {
            Db::name('orders')->where(['id' => $order, 'state' => 'unpaid'])->update(['state' => 'closed']);
            $output->writeln("closed $order");
        }, fn () => $this->running);

        return 0;
    }
}
