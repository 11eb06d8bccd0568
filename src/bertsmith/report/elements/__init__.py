"""What pages are made of: text, tables, inline SVG."""
