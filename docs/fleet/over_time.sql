-- One function's share of a service's CPU time, hour by hour, with what it calls.
select date, extract('hour' from time at time zone 'UTC') as hour,
       round(100 * coalesce(sum(value) filter (where list_contains([frame.function for frame in frames], 'alpha')), 0)
             / sum(value), 1) as percent
from 'profiles/**/*.parquet'
where service = 'shop' and kind = 'cpu'
group by all
order by date, hour;
