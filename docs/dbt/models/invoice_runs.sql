{{ config(materialized='incremental', unique_key='scan_id') }}

-- One row per run; is_invoice says whether it is a productive invoice now. Other runs stay in the table too, so that its highest
-- change_seq is the last change that has been read.
SELECT
    change.scan_id,
    change.change_seq,
    document.scan_id IS NOT NULL AS is_invoice,
    document.revision,
    document.completed_at,
    document.partner_name,
    document.rechnungsnummer,
    document.rechnungsdatum,
    document.waehrung,
    document.nettobetrag,
    document.bruttobetrag
FROM {{ source('scanfeed', 'changes') }} AS change
LEFT JOIN {{ source('scanfeed', 'document_rechnung') }} AS document
    ON document.scan_id = change.scan_id AND document.productive
{% if is_incremental() %}
-- With an upper limit PostgreSQL expects few rows and uses the indexes.
WHERE change.change_seq <= 9223372036854775807
    AND change.change_seq > (SELECT COALESCE(max(change_seq), 0) FROM {{ this }})
{% endif %}
