def subtotal(prices, coupon):
    return sum(price * (1 - coupon)  # per line
               for price in prices)


def total(prices, coupon=0.0):
    amount = subtotal(prices, coupon) * (1 - coupon)
    return amount
