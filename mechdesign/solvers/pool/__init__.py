"""The optimal program beyond tables: a pool of priced columns, its weights, their certificate. Knows no paper."""
