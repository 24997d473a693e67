# Stands in for a test suite: the demo needs no language runtime.
if grep -q "max(0, subtotal - discount)" price.py; then
  echo "12 tests, 12 passed"
else
  echo "12 tests, 11 passed, 1 failed: test_tax_is_charged_after_the_discount"
  exit 1
fi
