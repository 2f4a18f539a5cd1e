"""One folder per benchmark, the same rooms in each: card, load, prompt, score."""
