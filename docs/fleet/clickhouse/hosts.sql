-- The hosts on which a function's share is farthest from that on all hosts, per cent of the service's CPU time.
with shares as (
    select host, 100 * sumIf(value, function = 'alpha') / sum(value) as share
    from file('profiles/**/*.parquet')
    where service = 'shop' and kind = 'cpu'
    group by host
)
select host,
       round(share, 1) as percent,
       round((share - avg(share) over ()) / stddevSamp(share) over (), 1) as deviations
from shares
order by abs(share - avg(share) over ()) desc, host
limit 3;
