-- One function's share of a service's CPU time, hour by hour, with what it calls.
select date, toHour(time, 'UTC') as hour,
       round(100 * sumIf(value, has(frames.function, 'alpha')) / sum(value), 1) as percent
from file('profiles/**/*.parquet')
where service = 'shop' and kind = 'cpu'
group by date, hour
order by date, hour;
