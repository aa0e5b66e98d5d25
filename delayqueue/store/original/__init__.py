"""What ouqiang/delay-queue and php-cpm/delay-queue keep in their Redis, and how to import it."""
