<?php

namespace App\Process;

use App\Service\CloseOrders;
use Hyperf\DbConnection\Db;
use Hyperf\Process\AbstractProcess;
use Hyperf\Process\Annotation\Process;
use Hyperf\Process\ProcessManager;

#[Process(name: 'close-orders', nums: 2)]
class CloseOrdersProcess extends AbstractProcess
{
    public function handle(): void
    {
        $this->container->get(CloseOrders::class)->work(function (string $order) {
            Db::table('orders')->where(['id' => $order, 'state' => 'unpaid'])->update(['state' => 'closed']);
            echo "closed $order\n";
        }, fn () => ProcessManager::isRunning());
    }
}
