"""Applications that use Hopline as any client does."""
