<?php
// A message like any other: src/Message/CloseOrder.php

namespace App\Message;

class CloseOrder
{
    public function __construct(public string $order)
    {
    }
}
