"""Operations on what lives on the host: queues, readers, tables, files, summaries."""
