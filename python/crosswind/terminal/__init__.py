"""What a terminal shows and sends: text without commands, progress, sizes as users type them, signals."""
