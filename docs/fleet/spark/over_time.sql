-- One function's share of a service's CPU time, hour by hour, with what it calls.
select date, hour(time) as hour,
       round(100 * coalesce(sum(value) filter (where array_contains(frames.function, 'alpha')), 0)
             / sum(value), 1) as percent
from parquet.`profiles`
where service = 'shop' and kind = 'cpu'
group by all
order by date, hour;
