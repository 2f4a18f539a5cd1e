"""One page that shows many models: tables, published values, and the samples behind them."""
