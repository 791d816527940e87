-- Each function's share in this version and in the last one, per cent of CPU time. A difference beyond `noise`, twice its
-- standard error over the hosts, is more than chance.
with per_host as (
    select labels['version'] as version, host, function, sum(value) as value
    from file('profiles/**/*.parquet')
    where service = 'shop' and kind = 'cpu'
    group by version, host, function
), shares as (
    select version, host, function, 100 * value / sum(value) over (partition by version, host) as share
    from per_host
), places as (
    select distinct version, host, function
    from (select distinct version, host from per_host) as hosts
    cross join (select distinct function from per_host) as functions
), compared as (
    select version, function, avg(coalesce(share, 0)) as mean, varSamp(coalesce(share, 0)) / count(*) as variance
    from places left join shares using (version, host, function)
    group by version, function
)
select old.function as function,
       round(old.mean, 1) as before,
       round(new.mean, 1) as after,
       round(new.mean - old.mean, 1) as difference,
       round(2 * sqrt(old.variance + new.variance), 1) as noise
from compared as old join compared as new using (function)
where old.version = '1' and new.version = '2'
order by abs(new.mean - old.mean) desc, function
limit 5;
