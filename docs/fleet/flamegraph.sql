-- Folded stacks of a service, in milliseconds, for `nyquist flamegraph -`.
select stack || ' ' || (sum(value) // 1000000)::bigint as line
from 'profiles/**/*.parquet'
where service = 'shop' and kind = 'cpu' and stack <> ''
group by stack
having sum(value) >= 1000000
order by stack;
