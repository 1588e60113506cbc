"""Operations on images: files, colours, boxes, resizing."""
