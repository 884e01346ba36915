"""What every benchmark shares: paired alternating timing, statistics, verdicts, tables, models, fresh installs."""
