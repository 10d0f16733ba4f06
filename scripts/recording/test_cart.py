import unittest

from cart import total


class Cart(unittest.TestCase):
    def test_an_empty_cart_costs_nothing(self):
        self.assertEqual(total([]), 0)

    def test_without_a_coupon_prices_add_up(self):
        self.assertEqual(total([20, 30.5]), 50.5)

    def test_a_coupon_is_taken_off_once(self):
        self.assertAlmostEqual(total([60, 40], 0.1), 90)

    def test_amounts_are_rounded_to_cents(self):
        self.assertEqual(total([9.99, 0.5], 0.15), 8.92)
