#!/bin/sh
# Prints 300,000 orders of 90 customers: CUSTOMER;ARTICLE;PRICE.
awk 'BEGIN { for (i = 0; i < 300000; i++) printf "customer-number-%05d;an article with a long name %d;%d.%02d\n", (i * 7919) % 90, i % 97, (i * 31) % 500, i % 100 }'
