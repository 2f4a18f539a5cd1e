"""One page that shows many models: tables, published figures, and the samples behind them."""
