-- What each function allocates in this version and in the last one, in megabytes for each second in which the service ran on
-- a host.
with bytes as (
    select labels['version'] as version, function, sum(value) as value
    from file('profiles/**/*.parquet')
    where service = 'shop' and kind = 'alloc_space'
    group by version, function
), times as (
    select version, sum(duration_us) / 1e6 as seconds
    from (
        select distinct labels['version'] as version, host, time, duration_us
        from file('profiles/**/*.parquet')
        where service = 'shop' and kind = 'cpu'
    ) as windows
    group by version
), compared as (
    select function,
           sumIf(value / seconds, version = '1') / 1e6 as old,
           sumIf(value / seconds, version = '2') / 1e6 as new
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
