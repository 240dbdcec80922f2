"""Statistics that several rooms share; scipy's, where it has them.

| question | module |
|---|---|
| between what does a mean lie? | `interval` |
| between what does an estimate from cycles of a measurement lie? | `bootstrap` |
| what does noise that is correlated from block to block add? | `autocorrelation` |
| between what does a ratio of sums lie? | `jackknife` |
| in which order are two things compared? | `quads` |
| when may a result be looked at before it is complete? | `interim` |
"""
