"""Programs that use Hopline as anybody can."""
