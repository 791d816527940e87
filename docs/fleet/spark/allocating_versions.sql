-- What each function allocates in this version and in the last one, in megabytes for each second in which the service ran on
-- a host.
with bytes as (
    select labels['version'] as version, function, sum(value) as value
    from parquet.`profiles`
    where service = 'shop' and kind = 'alloc_space'
    group by all
), times as (
    select version, sum(duration_us) / 1e6 as seconds
    from (
        select distinct labels['version'] as version, host, time, duration_us
        from parquet.`profiles`
        where service = 'shop' and kind = 'cpu'
    )
    group by version
), compared as (
    select function,
           coalesce(sum(value / seconds) filter (where version = '1'), 0) / 1e6 as old,
           coalesce(sum(value / seconds) filter (where version = '2'), 0) / 1e6 as new
    from bytes join times using (version)
    group by function
)
select function,
       round(old, 2) as before,
       round(new, 2) as after,
       round(new - old, 2) as difference
from compared
order by abs(new - old) desc, function
limit 5;
