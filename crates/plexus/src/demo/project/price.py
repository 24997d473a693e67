TAX = 0.19


def total(items, discount=0):
    """Return the amount a customer pays, in cents."""
    subtotal = sum(item.price * item.count for item in items)
    taxed = subtotal * (1 + TAX)
    return round(taxed - discount)
