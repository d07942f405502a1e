<?php

// Stands in for Composer's: the library is the system's, and only classes of the tests are looked for beside it.
require_once 'PhpAmqpLib/autoload.php';

spl_autoload_register(static function (string $class): void {
    $prefix = 'PhpAmqpLib\\Tests\\';
    $file = __DIR__ . '/../tests/' . str_replace('\\', '/', substr($class, strlen($prefix))) . '.php';
    if (strncmp($class, $prefix, strlen($prefix)) === 0 && is_file($file)) {
        require $file;
    }
});
