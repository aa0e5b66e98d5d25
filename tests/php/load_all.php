<?php
// Loads every class of the packages, also where the framework that it extends is missing: php load_all.php FOLDER
//
// Prints whatever this version of PHP has to say against one, then how many files there are.

error_reporting(E_ALL);
ini_set('display_errors', '1');

$folders = [];
foreach (glob("$argv[1]/*/composer.json") as $package) {
    foreach (json_decode(file_get_contents($package), true)['autoload']['psr-4'] as $namespace => $folder) {
        $folders[$namespace] = dirname($package) . "/$folder";
    }
}
spl_autoload_register(function (string $class) use ($folders) {
    foreach ($folders as $namespace => $folder) {
        $file = $folder . strtr(substr($class, strlen($namespace)), '\\', '/') . '.php';
        if (str_starts_with($class, $namespace) && is_file($file)) {
            require_once $file;
        }
    }
});

$files = [...glob("$argv[1]/*/src/*.php"), ...glob("$argv[1]/*/src/*/*.php")];
foreach ($files as $file) {
    try {
        require_once $file;
    } catch (Error $error) {
        if (!preg_match('/^(Class|Interface|Trait) ".*" not found$/', $error->getMessage())) {
            throw $error;
        }
    }
}
echo count($files), "\n";
