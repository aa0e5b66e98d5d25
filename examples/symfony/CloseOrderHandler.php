<?php
// And its handler: src/MessageHandler/CloseOrderHandler.php

namespace App\MessageHandler;

use App\Message\CloseOrder;
use RuntimeException;
use Symfony\Component\Messenger\Attribute\AsMessageHandler;

#[AsMessageHandler]
class CloseOrderHandler
{
    /** Yours: UPDATE orders SET state = 'closed' WHERE id = ? AND state = 'unpaid'. Twice does no harm. */
    public function __invoke(CloseOrder $message): void
    {
        if (!ctype_digit($message->order)) {
            throw new RuntimeException("no order $message->order");
        }
        echo "closed order $message->order\n";
    }
}
