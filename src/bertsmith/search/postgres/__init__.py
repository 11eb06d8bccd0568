"""An index in a PostgreSQL database with pgvector (extra `postgres`)."""
