<?php
// Yii with the component that its page shows: php yii.php COMMAND...
//
// COMMAND: place ORDER SECONDS, paid ORDER SECONDS, or a command of Yii. The worker runs each job by calling this file again:
// what it needs comes from the environment, YII_VENDOR and YII_CONFIG.

define('YII_DEBUG', true);
$vendor = getenv('YII_VENDOR');
require "$vendor/autoload.php";
require "$vendor/yiisoft/yii2/Yii.php";
require __DIR__ . '/../../examples/yii/CloseOrder.php';

use app\jobs\CloseOrder;

$config = eval('return [' . getenv('YII_CONFIG') . '];');
$app = new yii\console\Application(['id' => 'shop', 'basePath' => sys_get_temp_dir(), 'vendorPath' => $vendor] + $config);
if ($argv[1] === 'place') {
    Yii::$app->queue->delay((int) $argv[3])->push(new CloseOrder(['order' => $argv[2]]));
} elseif ($argv[1] === 'paid') {
    $id = Yii::$app->queue->delay((int) $argv[3])->push(new CloseOrder(['order' => $argv[2]]));
    Yii::$app->queue->remove($id);
} else {
    exit($app->run());
}
