"""What a queue is: pure, given the time, and told what to do by the shell around it."""
