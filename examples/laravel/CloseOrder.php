<?php
// A job like any other in Laravel: app/Jobs/CloseOrder.php

namespace App\Jobs;

use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Foundation\Bus\Dispatchable;
use Illuminate\Queue\InteractsWithQueue;
use RuntimeException;

class CloseOrder implements ShouldQueue
{
    use Dispatchable, InteractsWithQueue, Queueable;

    public $tries = 4;

    public $backoff = [10, 60, 600]; // seconds between them; then it is among the failed jobs

    public function __construct(public string $order)
    {
    }

    public function tags(): array
    {
        return ["order:$this->order"];
    }

    /** Yours: Order::where('id', $this->order)->where('state', 'unpaid')->update(['state' => 'closed']); */
    public function handle(): void
    {
        if (!ctype_digit($this->order)) {
            throw new RuntimeException("no order $this->order");
        }
        echo "closed order $this->order\n";
    }
}
