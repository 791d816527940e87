-- Folded stacks of a service, in milliseconds, for `nyquist flamegraph -`.
select concat(stack, ' ', toString(intDiv(sum(value), 1000000))) as line
from file('profiles/**/*.parquet')
where service = 'shop' and kind = 'cpu' and stack <> ''
group by stack
having sum(value) >= 1000000
order by stack;
