"""From samples to interference rates: `fit` reads a measurement, the other files each hold one estimate."""
