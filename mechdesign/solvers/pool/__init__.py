"""The optimal program at sizes beyond tables: a pool of priced columns, its weights, and their certificate. Knows no paper."""
