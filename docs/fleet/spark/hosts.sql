-- The hosts on which a function's share is farthest from that on all hosts, per cent of the service's CPU time.
with shares as (
    select host, 100 * coalesce(sum(value) filter (where function = 'alpha'), 0) / sum(value) as share
    from parquet.`profiles`
    where service = 'shop' and kind = 'cpu'
    group by host
), compared as (
    select host, share, avg(share) over () as mean, stddev_samp(share) over () as deviation
    from shares
)
select host,
       round(share, 1) as percent,
       round((share - mean) / deviation, 1) as deviations
from compared
order by abs(share - mean) desc, host
limit 3;
